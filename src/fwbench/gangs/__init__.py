"""Replicas: cases that several processes, a gang, do together.

In the session, from top to bottom:

- pool: all that the plugin imports: engines, the gang that is kept between cases, kinds of cases;
- case, loops: cases of training that a gang does, and their loops over epochs;
- exchanges: exchanges of arrays, and steps with parameter servers: cases and shares;
- checks: whether the work of replicas is that of one;
- gang: the processes of one composition, in their places, sent requests and watched;
- launch: their processes, and the engine ``local``; engines: all other engines;
- rounds: the timing of steps, the clock that shows it, and the facts of replicas;
- network: links of a given rate between replicas on this machine.

In each replica, role answers the requests of the gang, and shares has its share of a case.
"""
