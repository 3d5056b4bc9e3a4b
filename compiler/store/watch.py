"""Who is told what a store does."""


class Watch:
    """Is told what a store does, for whoever shows progress; this one shows nothing.

    It is called by whatever thread computes, and must not raise.
    """

    def began(self, stages: tuple[str, ...]) -> None:
        """A stage is computed now.

        Args:
            stages: its name, behind those of the stages that run it.
        """

    def ended(self, stages: tuple[str, ...]) -> None:
        """And is done, or has failed."""

    def counted(self, stages: tuple[str, ...], done: int, of: int) -> None:
        """So many of the runs that a stage asked for in one go are done.

        Args:
            stages: name of the stage that is run several times, behind those that run it.
            done: results that were taken.
            of: runs that were asked for.
        """
