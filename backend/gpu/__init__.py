"""The GPUs of this machine: what NVML tells, and what it means.

nvml.py            samples, once a second
health.py          heat, throttling, errors and slow answers as alerts
thermal_guard.py   when heat holds work
history.py         minutes kept seven days; the last sample before a power cut
plot.py            the picture of the last hours
"""
