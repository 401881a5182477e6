"""Published values of shen2013 for the available data sets: Tables 1 to 5."""

# Name here: name in the paper, positives, negatives, columns, rows on which AUC was measured.
DATA = {
    "letter": ("letter", 789, 19211, 16, "CV"),
    "a9a": ("a9a", 7841, 24720, 123, "test"),
    "bank": ("bank", 5289, 39922, 51, "CV"),
    "shuttle": ("shuttle", 34108, 9392, 9, "test"),
    "mnist_0": ("mnist", 5923, 54077, 780, "test"),
    "connect4": ("connect", 44473, 23084, 126, "CV"),
    "covtype_binary": ("covtype", 297711, 283301, 54, "CV"),
}

# Table 1, the sets that could not be had: positives, negatives, columns.
ABSENT = {
    "protein": (8198, 9568, 357),
    "news20": (9999, 9997, 1355191),
    "rcv1": (10491, 9751, 47236),
    "ijcnn1": (4853, 45137, 22),
    "acoustic": (18261, 60562, 50),
    "real-sim": (22238, 50071, 20958),
    "url": (792145, 1603985, 3231961),
}

# Table 2: AUC at 8,000 pairs, 100 per round, gamma = 1; (mean, standard deviation) where published.
_AUC_METHODS = ("WSVM", "ERankSVM", "CRR", "Random", "Soft-Close", "Soft-Correct")
_AUC = {
    "letter": (0.9808, 0.9877, 0.9874, (0.9883, 0.0003), (0.9883, 0.0002), (0.9874, 0.0123)),
    "a9a": (0.9008, 0.9047, 0.8999, (0.9003, 0.0006), (0.9012, 0.0004), (0.9007, 0.0006)),
    "bank": (0.8932, 0.9023, 0.8972, (0.9051, 0.001), (0.9057, 0.0011), (0.9083, 0.0007)),
    "shuttle": (0.9873, 0.9876, 0.9888, (0.9894, 0.0001), (0.9896, 0.0001), (0.9907, 0.0)),
    "mnist_0": (0.9985, 0.9983, 0.9973, (0.9967, 0.0004), (0.9979, 0.0001), (0.9976, 0.0002)),
    "connect4": (0.8603, 0.8613, 0.8532, (0.8594, 0.0008), (0.8604, 0.0007), (0.8603, 0.0009)),
    "covtype_binary": (
        0.8047,
        0.8228,
        0.8189,
        (0.8238, 0.0008),
        (0.8239, 0.0007),
        (0.8249, 0.0006),
    ),
}
AUC = {name: dict(zip(_AUC_METHODS, row, strict=True)) for name, row in _AUC.items()}

# Table 3, over all fourteen data sets: soft-correct wins / loses / ties.
T_TESTS = {
    "WSVM": "9/2/3",
    "ERankSVM": "8/4/2",
    "CRR": "11/1/2",
    "Random": "10/0/4",
    "Soft-Close": "7/2/5",
}

# Table 4: seconds.
_TIMED = (
    "Random",
    "Soft-Close",
    "Soft-Correct",
    "Hard-Close",
    "Hard-Correct",
    "WSVM",
    "ERankSVM",
    "CRR",
)
_SECONDS = {
    "letter": (0.808, 1.53, 19.602, 192.671, 42.553, 0.29, 0.72, 0.15),
    "a9a": (0.374, 0.504, 1.065, 30.384, 19.537, 0.28, 4.25, 0.31),
    "bank": (1.957, 2.301, 4.644, 20.8064, 13.8512, 0.142, 5.624, 0.3),
    "shuttle": (0.146, 0.288, 3.02, 26.307, 17.577, 0.18, 0.98, 0.36),
    "mnist_0": (1.61, 2.851, 56.604, 205.135, 50.174, 4.92, 22.38, 2.75),
    "connect4": (2.734, 3.229, 5.493, 117.047, 121.359, 2.5, 15.42, 0.78),
    "covtype_binary": (1.47, 1.801, 2.739, 800.539, 5739.97, 6.41, 29.54, 3.3),
}
SECONDS = {name: dict(zip(_TIMED, row, strict=True)) for name, row in _SECONDS.items()}

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
