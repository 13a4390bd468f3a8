"""Speech: recordings to words, words to a voice message. Loaded when the first one is received or sent.

sound.py           recordings to samples in pieces, samples to Opus: ffmpeg, in a sandbox
speech_to_text.py  samples to words: the model itself, a server, or whisper.cpp in a sandbox
speech.py          a sentence to samples: piper or espeak-ng, in a sandbox
"""
