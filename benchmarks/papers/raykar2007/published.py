"""Published values of raykar2007 (AISTATS 2007): Tables 1 to 4."""

METHODS = (
    "RankNCG direct",
    "RankNCG fast",
    "RankNet linear",
    "RankNet two layer",
    "RankSVM linear",
    "RankSVM quadratic",
    "RankBoost",
)

# Table 1: number in the paper, rows, d, grades, mean number of pairs in a training part. Set 1,
# diabetes with 43 rows, was not available.
TABLE_1 = {
    "pyrimidines": (2, 74, 28, 3, 1113),
    "triazines": (3, 186, 61, 4, 7674),
    "wisconsin": (4, 194, 33, 4, 8162),
    "machine-cpu": (5, 209, 7, 4, 9820),
    "auto-mpg": (6, 392, 8, 3, 30057),
    "boston housing": (7, 506, 14, 2, 33693),
    "stock": (8, 950, 10, 5, 217301),
    "randnet 1000": (9, 1000, 50, 6, 195907),
    "randpoly 1000": (10, 1000, 50, 6, 225131),
    "abalone": (11, 4177, 9, 3, 3713729),
    "randnet 5000": (12, 5000, 50, 6, 6269910),
    "randpoly 5000": (13, 5000, 50, 6, 5367241),
    "california housing": (14, 20640, 9, 3, 82420255),
}


def _pairs(means: dict, deviations: dict) -> dict:
    """(mean, standard deviation) by data set and method; None where there is no value."""
    return {
        name: tuple(
            None if mean is None else (mean, deviation)
            for mean, deviation in zip(row, deviations[name], strict=True)
        )
        for name, row in means.items()
    }


# Table 3: training seconds, over five folds; None where the method did not finish.
_MEANS_3 = {
    "pyrimidines": (0.63, 0.12, 7.11, 13.55, 0.1, 0.62, 1.72),
    "triazines": (17.63, 0.7, 58.14, 131.41, 0.55, 13.96, 6.7),
    "wisconsin": (13.41, 0.33, 48.13, 97.24, 0.64, 23.17, 1.88),
    "machine-cpu": (20.38, 0.97, 57.99, 111.14, 1.14, 24.46, 1.24),
    "auto-mpg": (28.05, 0.4, 175.63, 333.49, 0.43, 37.27, 1.54),
    "boston housing": (18.92, 0.16, 195.14, 381.28, 0.36, 13.93, 2.32),
    "stock": (332.88, 3.29, 1264.58, 2464.84, 34.32, 1332.79, 5.56),
    "randnet 1000": (250.37, 5.08, 1166.23, 2380.62, 83.62, 13628.23, 13.55),
    "randpoly 1000": (102.48, 0.78, 1341.2, 2733.25, 1656.52, 14110.48, 13.99),
    "abalone": (1736.47, 1.47, None, None, None, None, 62.91),
    "randnet 5000": (6731.09, 19.1, None, None, None, None, 147.04),
    "randpoly 5000": (2556.93, 3.59, None, None, None, None, 133.42),
    "california housing": (None, 46.86, None, None, None, None, None),
}
_DEVIATIONS_3 = {
    "pyrimidines": (0.13, 0.03, 0.27, 0.3, 0.02, 0.13, 0.02),
    "triazines": (7.27, 0.39, 0.78, 2.19, 0.28, 0.48, 0.06),
    "wisconsin": (9.35, 0.43, 0.85, 1.05, 0.03, 3.37, 0.04),
    "machine-cpu": (4.87, 0.15, 0.58, 1.14, 0.27, 0.68, 0.02),
    "auto-mpg": (10.94, 0.23, 1.55, 3.96, 0.02, 3.1, 0.04),
    "boston housing": (0.63, 0.01, 4.75, 7.93, 0.03, 2.15, 0.04),
    "stock": (26.66, 0.88, 3.21, 10.94, 4.05, 69.47, 0.37),
    "randnet 1000": (21.03, 0.47, 17.47, 34.53, 6.3, 210.1, 0.07),
    "randpoly 1000": (0.59, 0.04, 6.91, 23.11, 99.89, 121.98, 0.05),
    "abalone": (191.03, 0.38, None, None, None, None, 0.59),
    "randnet 5000": (312.41, 1.76, None, None, None, None, 0.16),
    "randpoly 5000": (15.03, 0.41, None, None, None, None, 1.14),
    "california housing": (None, 1.06, None, None, None, None, None),
}
TABLE_3 = _pairs(_MEANS_3, _DEVIATIONS_3)

# Table 4: generalized WMW on the test parts.
_MEANS_4 = {
    "pyrimidines": (0.987, 0.948, 0.872, 0.968, 0.973, 0.837, 0.906),
    "triazines": (0.942, 0.914, 0.828, 0.891, 0.934, 0.861, 0.651),
    "wisconsin": (0.764, 0.771, 0.773, 0.75, 0.793, 0.795, 0.748),
    "machine-cpu": (0.92, 0.938, 0.919, 0.923, 0.929, 0.901, 0.926),
    "auto-mpg": (0.999, 0.998, 0.998, 0.996, 0.998, 0.995, 0.992),
    "boston housing": (1.0, 1.0, 1.0, 0.8, 1.0, 1.0, 1.0),
    "stock": (0.984, 0.984, 0.951, 0.765, 0.984, 0.996, 0.958),
    "randnet 1000": (0.944, 0.944, 0.915, 0.899, 0.945, 0.747, 0.848),
    "randpoly 1000": (0.625, 0.625, 0.688, 0.644, 0.625, 0.823, 0.618),
    "abalone": (0.536, 0.534, None, None, None, None, 0.535),
    "randnet 5000": (0.917, 0.917, None, None, None, None, 0.845),
    "randpoly 5000": (0.623, 0.623, None, None, None, None, 0.607),
    "california housing": (None, 0.979, None, None, None, None, None),
}
_DEVIATIONS_4 = {
    "pyrimidines": (0.019, 0.077, 0.088, 0.038, 0.048, 0.142, 0.144),
    "triazines": (0.044, 0.047, 0.03, 0.064, 0.019, 0.088, 0.045),
    "wisconsin": (0.028, 0.046, 0.046, 0.035, 0.018, 0.035, 0.056),
    "machine-cpu": (0.015, 0.02, 0.035, 0.04, 0.026, 0.014, 0.018),
    "auto-mpg": (0.002, 0.002, 0.003, 0.003, 0.002, 0.008, 0.004),
    "boston housing": (0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0),
    "stock": (0.004, 0.003, 0.004, 0.245, 0.004, 0.001, 0.003),
    "randnet 1000": (0.012, 0.012, 0.017, 0.028, 0.013, 0.005, 0.015),
    "randpoly 1000": (0.025, 0.025, 0.032, 0.054, 0.026, 0.008, 0.024),
    "abalone": (0.011, 0.008, None, None, None, None, 0.014),
    "randnet 5000": (0.005, 0.005, None, None, None, None, 0.006),
    "randpoly 5000": (0.008, 0.008, None, None, None, None, 0.01),
    "california housing": (None, 0.001, None, None, None, None, None),
}
TABLE_4 = _pairs(_MEANS_4, _DEVIATIONS_4)

# Table 2: columns d; seconds and WMW, each mean and standard deviation over 100 users.
TABLE_2 = {
    50: {
        "RankNCG fast": ((0.48, 0.19), (0.693, 0.054)),
        "RankBoost": ((6.68, 1.65), (0.672, 0.056)),
    },
    100: {
        "RankNCG fast": ((0.44, 0.17), (0.707, 0.049)),
        "RankBoost": ((12.67, 2.83), (0.679, 0.050)),
    },
    200: {
        "RankNCG fast": ((0.42, 0.17), (0.722, 0.053)),
        "RankBoost": ((27.53, 5.99), (0.685, 0.057)),
    },
    400: {
        "RankNCG fast": ((0.41, 0.17), (0.720, 0.054)),
        "RankBoost": ((68.08, 13.95), (0.685, 0.051)),
    },
    800: {
        "RankNCG fast": ((0.45, 0.13), (0.721, 0.050)),
        "RankBoost": ((193.18, 39.75), (0.673, 0.058)),
    },
    1600: {
        "RankNCG fast": ((0.51, 0.15), (0.719, 0.053)),
        "RankBoost": ((613.54, 124.93), (0.682, 0.058)),
    },
}

# Section 5: 51,200 x 51,200 terms at an error of 1e-10, seconds.
FAST_SUM, DIRECT_SUM = 4.29, 17.26 * 3600
