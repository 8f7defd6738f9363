"""Engines other than ``local``, imported when a session asks for one of them.

- places: the file of ``--fw-places``, and the engine ``local`` at the machines that it lists;
- hosts: the commands that start roles elsewhere, and the hosts of such roles;
- rendezvous: the port at which such roles connect to their controller;
- launcher: the process that starts a role on its machine, and answers for it.
"""
