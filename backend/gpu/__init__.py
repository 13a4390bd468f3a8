"""The GPUs of this machine: what NVML reports, and what it means.

nvml.py      samples, once a second
health.py    alerts for heat, throttling, errors and slow answers
history.py   averages per minute, kept for a month; the last sample before a power cut
"""
