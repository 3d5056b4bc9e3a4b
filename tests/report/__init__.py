"""Report data: packages read back, time, memory, whole builds, differences."""
