"""What a build is and does, as data: of packages, programs in time, memory, whole builds, and two of them."""
