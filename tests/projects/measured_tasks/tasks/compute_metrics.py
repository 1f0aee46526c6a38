def compute_scores(scores) -> dict[str, int | float]:
    num_scores = len(scores)
    if num_scores == 0:
        raise ValueError("Cannot compute metrics: received 0 sample scores.")

    def safe_division(a, b, default):
        return a / b if b != 0 else default

    num_tp = 0
    num_fp = 0
    num_p = 0

    for sample_scores in scores:
        gt = sample_scores["gt"]
        pred = sample_scores["pred"]
        if gt is True and pred is True:
            num_tp += 1
            num_p += 1
        elif gt is True and pred is False:
            num_p += 1
        elif gt is False and pred is True:
            num_fp += 1

    return {
        "precision": safe_division(num_tp, num_tp + num_fp, 1.0),
        "recall": safe_division(num_tp, num_p, 1.0),
    }
