"""Published values of kotlowski2011 (ICML 2011): Table 1.

Figure 1 is four panels of box plots without numbers. According to the text, differences are at most
around 0.01; SVM-OR is slightly better than the logistic loss on balanced data and worse on
imbalanced data; the exponential loss is always last.
"""

METHODS = ("exponential", "SVM-OR", "logistic")

# Table 1: rank loss. The last set of the paper, kdd04 (.2114, .2083, .2143), was not available.
TABLE_1 = {
    "breast_w": (0.0051, 0.0049, 0.0054),
    "breast_cancer": (0.3077, 0.2955, 0.3005),
    "colic": (0.1251, 0.1352, 0.1179),
    "diabetes": (0.1724, 0.1702, 0.1804),
    "haberman": (0.3684, 0.3153, 0.3820),
    "heart_h": (0.0887, 0.1005, 0.0929),
    "hepatitis": (0.1289, 0.1321, 0.1230),
    "ionosphere": (0.0811, 0.0773, 0.0884),
    "vote": (0.0098, 0.0103, 0.0096),
    "covtype": (0.1635, 0.1604, 0.1623),
}
COVTYPE_TRAINING_ROWS = 522_911
