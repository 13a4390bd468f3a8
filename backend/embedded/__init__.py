"""The llama.cpp server inside a Python process, and pocket.gguf, the demo's model."""
