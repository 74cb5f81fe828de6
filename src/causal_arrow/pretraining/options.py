"""The options of pretraining, in words: one text for each, whichever command shows it. Imports nothing heavy."""

HELP = {
    "config": "A shipped configuration (any, base, paper, small, smoke, strict) or a TOML file that describes the run.",
    "set": "Change a setting of the file, as in model.pair_width=192. May be given several times.",
    "output": "Folder of a new run; runs/NAME OF CONFIG by default.",
    "resume": "Go on with the run in this folder; more stages, pair_blocks, channels and statistics may be set.",
    "init": "Start from these weights, of this network or a smaller one it can grow from: a folder, a file, or a "
    "bundled name.",
    "minutes": "Stop, saved and validated, after this long.",
    "decay_minutes": "Let the learning rate fall to zero over the last minutes.",
    "compiler_cache": "Read compiled code from this file if it is there, write it at the end. Only use a file of your "
    "own.",
    "device": "auto (a GPU if there is one), cpu, cuda, cuda:1.",
}
