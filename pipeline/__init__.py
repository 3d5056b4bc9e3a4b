"""What people start: the ``tilewright`` command."""
