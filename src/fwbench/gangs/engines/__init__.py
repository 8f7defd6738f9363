"""Engines other than ``local``, imported when a session asks for one of them.

- places: the file of ``fw_places``, the commands that start roles elsewhere, the hosts of such
  roles, and the engine ``local`` at the machines that the file lists;
- rendezvous: the port at which such roles connect to their controller;
- launcher: the process that starts a role on its machine, and answers for it.
"""
