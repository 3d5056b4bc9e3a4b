"""Named rewrites of low programs: each takes a program and gives a program with the same results (AL-08).

``clears``    leaves out fills that nobody needs
``cleared``   lets zeros be there when the program is loaded, instead of filling them in every run
``relays``    sends through other tiles what one tile would send in too many spans
``phases``    merges exchange phases, moving local work out of the way
``computes``  joins compute steps
"""
