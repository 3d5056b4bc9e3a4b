"""Named rewrites of low programs: each takes a program and gives a program with the same results (AL-08).

``clears``    leaves out fills that nobody needs
``phases``    merges exchange phases, moving local work out of the way
``computes``  joins compute steps

Not among them is routing through relays: sending what many tiles need to a few first, which pass it on. A
relay takes load off a sender and adds receptions. In the phases of the representative products the busiest
receiver takes as many words as the busiest sender sends, or more: of the MLP of SigLIP on 1,472 tiles 13,248
against 296 for activations, 7,728 against 7,728 for partials; and within 7 % of what the mean tile takes.
Multicast has served the senders already, and there is nothing to shift.
"""
