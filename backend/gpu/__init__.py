"""The GPUs of this machine: what NVML tells, and what it means.

nvml.py      samples, once a second
health.py    heat, throttling, errors and slow answers as alerts
history.py   minutes kept a month; the last sample before a power cut
"""
