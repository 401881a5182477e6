"""Figures of shen2013 for the data sets at hand: Tables 1, 2, 4 and 5."""

# name here: name in the paper, positives, negatives, columns, where its AUC was measured
DATA = {
    "letter": ("letter", 789, 19211, 16, "CV"),
    "a9a": ("a9a", 7841, 24720, 123, "test"),
    "bank": ("bank", 5289, 39922, 51, "CV"),
    "shuttle": ("shuttle", 34108, 9392, 9, "test"),
    "mnist_0": ("mnist", 5923, 54077, 780, "test"),
    "connect4": ("connect", 44473, 23084, 126, "CV"),
    "covtype_binary": ("covtype", 297711, 283301, 54, "CV"),
}

# Table 2: AUC at 8,000 pairs, 100 per round, gamma = 1; (mean, standard deviation) where there is
# one.
AUC = {
    "letter": {"WSVM": .9808, "ERankSVM": .9877, "CRR": .9874, "Random": (.9883, .0003), "Soft-Close": (.9883, .0002),
    "Soft-Correct": (.9874, .0123)}, "a9a": {"WSVM": .9008, "ERankSVM": .9047, "CRR": .8999, "Random": (.9003, .0006),
    "Soft-Close": (.9012, .0004), "Soft-Correct": (.9007, .0006)}, "bank": {"WSVM": .8932, "ERankSVM": .9023, "CRR":
    .8972, "Random": (.9051, .0010), "Soft-Close": (.9057, .0011), "Soft-Correct": (.9083, .0007)}, "shuttle":
    {"WSVM": .9873, "ERankSVM": .9876, "CRR": .9888, "Random": (.9894, .0001), "Soft-Close": (.9896, .0001),
    "Soft-Correct": (.9907, .0000)}, "mnist_0": {"WSVM": .9985, "ERankSVM": .9983, "CRR": .9973, "Random": (.9967,
    .0004), "Soft-Close": (.9979, .0001), "Soft-Correct": (.9976, .0002)}, "connect4": {"WSVM": .8603, "ERankSVM":
    .8613, "CRR": .8532, "Random": (.8594, .0008), "Soft-Close": (.8604, .0007), "Soft-Correct": (.8603, .0009)},
    "covtype_binary": {"WSVM": .8047, "ERankSVM": .8228, "CRR": .8189, "Random": (.8238, .0008), "Soft-Close": (.8239,
    .0007), "Soft-Correct": (.8249, .0006)},
}  # fmt: skip

# Table 3, over all fourteen data sets: soft-correct wins / loses / ties.
T_TESTS = {
    "WSVM": "9/2/3",
    "ERankSVM": "8/4/2",
    "CRR": "11/1/2",
    "Random": "10/0/4",
    "Soft-Close": "7/2/5",
}

# Table 4: seconds.
SECONDS = {
    "letter": {"Random": 0.808, "Soft-Close": 1.53, "Soft-Correct": 19.602, "Hard-Close": 192.671, "Hard-Correct":
    42.553, "WSVM": 0.29, "ERankSVM": 0.72, "CRR": 0.15}, "a9a": {"Random": 0.374, "Soft-Close": 0.504,
    "Soft-Correct": 1.065, "Hard-Close": 30.384, "Hard-Correct": 19.537, "WSVM": 0.28, "ERankSVM": 4.25, "CRR": 0.31},
    "bank": {"Random": 1.957, "Soft-Close": 2.301, "Soft-Correct": 4.644, "Hard-Close": 20.8064, "Hard-Correct":
    13.8512, "WSVM": 0.142, "ERankSVM": 5.624, "CRR": 0.3}, "shuttle": {"Random": 0.146, "Soft-Close": 0.288,
    "Soft-Correct": 3.02, "Hard-Close": 26.307, "Hard-Correct": 17.577, "WSVM": 0.18, "ERankSVM": 0.98, "CRR": 0.36},
    "mnist_0": {"Random": 1.61, "Soft-Close": 2.851, "Soft-Correct": 56.604, "Hard-Close": 205.135, "Hard-Correct":
    50.174, "WSVM": 4.92, "ERankSVM": 22.38, "CRR": 2.75}, "connect4": {"Random": 2.734, "Soft-Close": 3.229,
    "Soft-Correct": 5.493, "Hard-Close": 117.047, "Hard-Correct": 121.359, "WSVM": 2.5, "ERankSVM": 15.42, "CRR":
    0.78}, "covtype_binary": {"Random": 1.47, "Soft-Close": 1.801, "Soft-Correct": 2.739, "Hard-Close": 800.539,
    "Hard-Correct": 5739.97, "WSVM": 6.41, "ERankSVM": 29.54, "CRR": 3.3},
}  # fmt: skip

# Table 5: the best gamma; True where it beats ERankSVM significantly.
GAMMA = {
    "letter": {"Soft-Close": ("uniform", True), "Soft-Correct": ("0.9", True)},
    "a9a": {"Soft-Close": ("uniform, 0.7", False), "Soft-Correct": ("uniform, 0.6, 0.7", False)},
    "bank": {"Soft-Close": ("1", True), "Soft-Correct": ("uniform, 1", True)},
    "shuttle": {"Soft-Close": ("uniform, 1", True), "Soft-Correct": ("uniform, 1", True)},
    "mnist_0": {"Soft-Close": ("0.1, 0.2, 0.4", True), "Soft-Correct": ("0.6", False)},
    "connect4": {"Soft-Close": ("uniform, 1", False), "Soft-Correct": ("uniform, 1", False)},
    "covtype_binary": {
        "Soft-Close": ("uniform, 1", True),
        "Soft-Correct": ("uniform, 0.9, 1", True),
    },
}
