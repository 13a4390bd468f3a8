"""How well Pocket does what people ask of it in the first hour, measured through the real server.

    __main__    the command: options, table, exit code
    targets     what the committed model must reach
    measure     plays every case fresh and after ten exchanges; rates and speeds
    play        one conversation: ask, give the tool's result, ask again
    server      llama.cpp's server in a child process
    wire        chat completions and counts over HTTP
    case        a case, its turns, and what a turn must do
    checks      what makes a call right and an answer hold its value
    world       a small pretended computer that answers the tool calls
    shell       its bash; gauges prints figures, arithmetic does sums
    machine     its figures: disk, memory, uptime, clock
    when        times in words
    danger      what a call may not do
    asked/      what is asked, by families; beyond.txt is what it cannot do
    newcomer    the wishes of newcomer.toml through the whole demo, with what the program answers itself

The wording here shares nothing with the training templates but a greeting or
a command of one word, and must not (tests compare the two): whoever edits the
generator leaves these files unread.
"""
