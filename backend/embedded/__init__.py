"""The llama.cpp server inside a Python process, and pocket.gguf, the model of the demo."""
