"""What donmez2009 reports, for TD2003 and TD2004 of LETOR."""

# Table 1: the order of the methods; >> p < 0.01, > p < 0.05, ~ indifferent.
TABLE_1 = {
    "map": {
        "TD2004": "LossMin >> Entropy >> Diverse >> Uncertain",
        "TD2003": "LossMin >> Entropy >> Uncertain >> Diverse",
    },
    "ndcg@10": {
        "TD2004": "LossMin >> Entropy >> Diverse ~ Uncertain",
        "TD2003": "LossMin ~ Entropy >> Uncertain > Diverse",
    },
    "auc": {
        "TD2004": "LossMin > Entropy > Diverse >> Uncertain",
        "TD2003": "LossMin ~ Entropy >> Uncertain > Diverse",
    },
}

# Table 2, TD2003: seconds per iteration (training, ranking and choosing) and MAP, iterations 0 to
# 4.
TABLE_2 = {
    "LossMin": {
        "seconds": [1.347, 1.977, 2.003, 2.038, 2.110],
        "map": [0.184, 0.219, 0.201, 0.221, 0.226],
    },
    "Entropy": {
        "seconds": [1.347, 45.234, 48.576, 52.865, 55.038],
        "map": [0.184, 0.183, 0.204, 0.222, 0.228],
    },
    "Diverse": {
        "seconds": [1.347, 36.072, 39.127, 41.973, 44.665],
        "map": [0.184, 0.190, 0.171, 0.183, 0.160],
    },
    "Uncertain": {
        "seconds": [1.347, 1.947, 1.953, 1.968, 2.001],
        "map": [0.184, 0.194, 0.191, 0.189, 0.186],
    },
}
