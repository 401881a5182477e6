"""Data sets and seeds on which the choice across families is judged, listed before any rule was
tuned.

Every third table (in the order of the manifest), every third archive and every third review is
kept aside: rules are compared on the others, and the results on the sets kept aside are looked at
once, at the end. Splits have the seeds 0 to 2. At most TRAIN_ROWS rows are trained on; the others,
at most TEST_ROWS, are test rows.
"""

from _regret_sets import ARCHIVES, REVIEWS

TABLES = (
    "aer_creditcard", "healthins", "psid1976", "resume_call", "smokeban", "doctorvisits",
    "headinjury", "monica", "nasscds", "food_reviews", "ad_data", "mplsstops", "chile",
    "titanic_names", "wells", "mn_police_first", "smoking_uk", "births14", "reddit_finance",
    "rotterdam", "tv16", "happiness", "covid_first", "indo_rct", "hhs_noleak", "loanapp", "nhefs",
    "rats_sex", "taxi",
)  # fmt: skip
SETS = (*TABLES, *ARCHIVES, *REVIEWS)
KEPT_ASIDE = (*TABLES[2::3], *ARCHIVES[2::3], *REVIEWS[2::3])
SPLITS = range(3)
TRAIN_ROWS, TEST_ROWS = 8_000, 20_000
