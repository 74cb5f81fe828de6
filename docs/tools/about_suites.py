"""The title and the first paragraphs of the page of each suite."""

from __future__ import annotations

from dataclasses import dataclass

from causal_arrow_lab.benchmarks.suites import SUITES
from remarks import STEERED
from summaries import DEVELOPMENT


@dataclass(frozen=True)
class About:
    """The title of a suite's page and its first paragraph."""

    title: str
    text: str


ABOUT = {
    "in-distribution": About(
        "The paper's tasks",
        "Synthetic tables drawn as in section 4.1 of the paper, the kind of table that the networks are trained on. In "
        "each row one part is held fixed: the number of observations n, the number of variables p, the graph family, "
        "the kind of equation, or the noise (section 6.2 and appendix E.2 of the paper).",
    ),
    "broad": About(
        "A wider mixture of numbers",
        "Tables drawn from the mixture of synthetic tasks that the training of arrow-base began with: half of them as "
        "in the paper, the others with raw structural equations and with wider choices of everything.",
    ),
    "shifted": About(
        "Shifted tasks",
        "Synthetic tables with small-world graphs, spline equations or gamma noise, which no network was trained on "
        "(section 6.3 of the paper). Each row changes one part of the paper's tasks; `none` changes nothing and `all` "
        "changes all three. For arrow-base the splines are unseen by name only: its training mixture has random "
        "features whose curves are about as rough. The share of a degree-8 polynomial fit that degrees 1, 2, 3 and 5 "
        "explain is 49%, 78%, 89% and 97% for random features, 44%, 72%, 87% and 98% for the splines, and 91%, 92%, "
        "97% and 99% for the paper's perceptrons. Only for arrow-strict are they a shift.",
    ),
    "held-out": About(
        "Held-out tasks",
        "Synthetic tables drawn as in section 4.1 of the paper, but with parts that no training configuration may "
        "name: random geometric graphs, lattices and cascades; periodic functions, distances and maxima; Gumbel, "
        "double Weibull and asymmetric Laplace noise. In each row one of them replaces the paper's choices; "
        "in `all` the graph, the equations and the noise of every table are of these kinds. Shapes and everything else "
        "are the paper's: this suite measures what new parts cost, not how tables that differ in other ways fare.",
    ),
    "networks": About(
        "Gaussian networks from the literature",
        "Tables of 100 observations drawn from four linear Gaussian networks that others fitted to gene expression and "
        "plant genetics (section 6.3 of the paper). The true graph is the published network.",
    ),
    "herman": About(
        "Linear Gaussian models of Herman et al.",
        "Linear tables with normal noise, whose coefficients and noise variances have six different distributions from "
        "the literature (appendix E.3 of the paper). Here the data often identify conditional independences only.",
    ),
    "sachs": About(
        "Protein signaling in human cells (Sachs et al.)",
        "Flow cytometry of 11 proteins. The pooled rows draw 100 of 7,466 cells from nine experimental conditions "
        "(appendix E.3 of the paper); the observational rows use the 853 cells without any intervention, once. The "
        "reference graph has 20 edges; two rows use the version with 17. By default Arrow also tries skewed columns on "
        "a log scale; “scale given” reads the values as they are, which is the paper's protocol.",
    ),
    "wide": About(
        "Many variables",
        "The paper's tasks with 1,000 observations of 100, 200 and 500 variables. arrow-base has seen some of "
        "up to 256 variables in training, arrow-strict of up to 100.",
    ),
    "long": About(
        "Many observations",
        "The paper's tasks with 20 variables and 2,000 to 100,000 observations. arrow-base has seen a few of up "
        "to 10,000 in training, arrow-strict none of more than 2,000.",
    ),
    "small": About("Few observations", "The paper's tasks with 20 variables and 20, 50 and 100 observations."),
    "confounded": About(
        "Edges despite hidden causes",
        "The paper's tasks with up to four common causes removed, so that some columns share a cause that is not in "
        "the table. All methods but Arrow assume that there is none, and only edges are judged; for "
        "the causes see [hidden](hidden.md).",
    ),
    "controls": About(
        "Independent columns",
        "Columns that have nothing to do with each other: every edge that a method finds is false. In the last row "
        "each protein of Sachs et al. is taken from different cells.",
    ),
    "limit": About(
        "What can be known",
        "Linear tables with normal noise, 500 observations of 3 to 5 variables, with coefficients from four "
        "distributions. With so few variables the exact posterior over all graphs can be computed: [what can be known]"
        "(../what-can-be-known.md) explains it.",
    ),
    "discrete": About(
        "Discrete networks from the literature",
        "Tables of categories drawn from eleven published Bayesian networks, 500 and 2,000 observations, with the "
        "levels of every variable in random order.",
    ),
    "mixed": About(
        "Columns of several kinds",
        "Synthetic tables of 500 observations and 20 variables in which some or all columns are yes/no, ordered "
        "levels, categories or counts.",
    ),
    "missing": About(
        "Missing values",
        "Synthetic tables of 500 × 20 in which 10%, 30% or 50% of the cells are missing: completely at random, "
        "depending on another column, or depending on the missing value itself.",
    ),
    "interventional": About(
        "Experiments with known targets",
        "Tables in which some rows come from experiments that set known variables: synthetic ones, and the cells of "
        "Sachs et al. with their conditions. In the rows called class only the experiments distinguish the members of "
        "an equivalence class.",
    ),
    "hidden": About(
        "Hidden causes, asked for",
        "Tables in which some pairs of columns share a cause that is not in the table: synthetic ones, and networks "
        "from the literature with a fifth of their variables removed.",
    ),
    "instruments": About(
        "Several instruments per variable",
        "Six variables, each also read by several instruments through rising curves with little noise, 500 "
        "observations. In the last row only the instruments are in the table.",
    ),
    "measurement-error": About(
        "Measurement error",
        "Synthetic tables of 500 × 20 whose columns are measured with noise. Rows give the share of a column's "
        "variance that is noise.",
    ),
    "textbook": About(
        "Textbook graphs",
        "Chains, forks, colliders, mediators and a few more graphs of three to five variables. For linear equations "
        "with normal noise an answer counts as right if its equivalence class is right, otherwise if the graph is.",
    ),
    "independent": About(
        "Eight independent columns",
        "Eight columns of 500 observations that have nothing to do with each other, of several kinds: every edge is "
        "false.",
    ),
    "symmetries": About(
        "Changes that should change nothing",
        "Four tables that come with scikit-learn, and the same tables with every column negated, with random signs, "
        "with an added column of noise, without their most isolated column, or with 90% of their rows. There is no "
        "true graph: what counts is how much the answer changes.",
    ),
    "effects": About(
        "Effects, measured",
        "Six effects in each table of 5 to 20 variables and 100 to 1,000 observations, drawn as in section 4.1 of the "
        "paper; the true effects are known by intervening in the equations. linear, nonlinear: numbers alone. mixed: "
        "linear relations between numbers, yes/no, ordered levels and categories. yes-no-treatment: the same with "
        "perceptrons and yes/no treatments. level-of-outcome: the outcome is the share of one level of a category. "
        "hidden: linear, with one hidden cause of two or three variables for every five variables. “Best "
        "graph, DoWhy” is our most probable graph with DoWhy's regression.",
    ),
    "experiments": About(
        "Experiments, measured",
        "Which variable to set next: five experiments of 100 observations each, chosen one after another by "
        "`next_experiment`, all five at once, at random, or by the number of edges in the graph that is shown. Tables "
        "have 200 observations of 10 or 20 variables, drawn as in section 4.1 of the paper with up to two edges per "
        "variable; each experiment sets one variable at random over its usual range. All policies learn from the same "
        "observations of the same experiment.",
    ),
}

ORIGINS = {
    "real": "real tables",
    "unseen": "tables unlike training, by design",
    "training": "tables drawn like the training tasks",
}
"""Origins of the tables of a row, in the words of pages."""
REAL = ("sachs", "symmetries", "interventional/sachs-raw", "interventional/sachs-log")
UNSEEN = (
    *("networks", "herman", "controls", "discrete", "independent", "held-out", "hidden/ECOLI70", "hidden/ALARM"),
    *("limit/UUMC", "limit/onion", "shifted/graphs", "shifted/noise", "shifted/all"),
)


def origin_of(suite: str, row: str) -> str:
    """A key of ORIGINS.

    Suites made for development count as training, because training was fitted to them, and so do splines alone, because
    the training mixture of arrow-base has random features that are about as rough.
    """
    for origin, members in (("real", REAL), ("unseen", UNSEEN)):
        if suite in members or f"{suite}/{row}" in members:
            return origin
    return "training"


MEASURES_EXPLAINED = {
    "nshd": "Edges to add, remove or reverse, divided by the number of true edges. A graph without edges has 1.",
    "f1": "F1 of directed edges: 1 if all true edges are found and no others.",
    "ap": "Average precision of the ranking of all ordered pairs by the method's probabilities or scores.",
    "shd": "Edges to add, remove or reverse.",
    "shd_0": "Edges to add, remove or reverse in the graph that is shown before any experiment.",
    "shd_1": "In the graph that is shown after one experiment.",
    "class_right": "The share of datasets whose Markov equivalence class is exactly right.",
    "graph_right": "The share of datasets whose graph is exactly right.",
    "right": "The share of datasets with the right class (linear equations, normal noise) or the right graph (others).",
    "hidden_ap": "Average precision of the ranking of pairs by whether they share a hidden cause.",
    "expected_edges": "The sum of all edge probabilities.",
    "estimated_edges": "Edges in the graph that is shown.",
    "edges_changed": "Edges that differ between the two answers.",
    "share_changed": "The same, divided by the edges of the first answer.",
    "largest_change": "The largest difference between two probabilities of the same edge.",
    "bias": "Where there is an effect: positive away from zero, negative towards zero.",
    "squared_error": "Root of the mean squared error of all effects, in standard deviations or shares of the outcome.",
    "coverage": "The share of all effects, most of them zero, that lie in their 90% interval.",
    "coverage_of_effects": "The same for the effects that are not zero.",
    "width": "The mean width of the 90% intervals.",
    "mean_shd": "Mean SHD of the graph that is shown after one to five experiments.",
    "until_half": "Experiments until at most half of the first mistakes are left; 6 where five were not enough.",
}
"""The explanation of a measure, shown below its title."""

DEVELOPED = (
    "This is a development suite: weights and rules may be chosen by its results. It shows what a network can do, not "
    "what it will do on tables that nobody has looked at."
)
ONE_CHANGE = "One choice was made by this suite: its results at n = 20 are why arrow-base has seen tables of 20 rows."
NOT_STEERED = (
    "No part of any network's training was chosen by the results of this suite. They were looked at when new weights "
    "of arrow-base were accepted."
)
FROZEN = (
    "This suite is frozen: it is run once per release, after everything else about the release is decided, and its "
    "results are published whatever they are. Nothing is chosen by them."
)
STRICT = (
    "arrow-strict was trained with settings fixed beforehand: no choice of its training was made by a benchmark. It "
    "shares its encoder with arrow-base."
)


def role_of(suite: str, with_strict: bool = False) -> str:
    """A sentence or two on whether choices were made by the results of a suite."""
    if suite in DEVELOPMENT:
        return DEVELOPED
    if suite == "small":
        return ONE_CHANGE
    if suite in SUITES and SUITES[suite].frozen:
        return FROZEN
    if suite in SUITES and SUITES[suite].steered:
        return f"{STEERED} {STRICT}" if with_strict else STEERED
    return NOT_STEERED


def short_role(suite: str) -> str:
    """The same in a word or two, for tables."""
    if suite in DEVELOPMENT:
        return "development"
    if suite in SUITES and SUITES[suite].frozen:
        return "frozen test"
    return "steering arrow-base" if suite in SUITES and (SUITES[suite].steered or suite == "small") else "no choice"
