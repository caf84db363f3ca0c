//! What a benchmark says: figures, each with the floor beside it.

use std::fmt;

use serde::Serialize;

/// One figure. As JSON it is a line `{"figure", "value", "unit", "floor", "ratio"}`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// What was measured, in words.
    pub(crate) figure: String,
    /// How much.
    pub(crate) value: f64,
    /// Of what.
    pub(crate) unit: &'static str,
    /// What the machine gave in the same minutes, in the same unit.
    pub(crate) floor: Option<f64>,
    /// `value` by `floor`: the median of the rounds, which need not be the quotient of the two.
    pub(crate) ratio: Option<f64>,
    /// The lowest and the highest ratio of the rounds; of the values where there is no floor.
    #[serde(skip)]
    pub(crate) spread: Option<(f64, f64)>,
    /// What it is to reach.
    #[serde(skip)]
    pub(crate) target: Option<Target>,
}

/// What is to be reached by the ratio, or by the value where there is no floor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

/// The figures of one subject, and what is said about how they were measured.
#[derive(Debug)]
pub(crate) struct Part {
    /// A heading.
    pub(crate) title: &'static str,
    /// Markdown: what each figure and its floor is.
    pub(crate) method: String,
    /// In the order of the page.
    pub(crate) figures: Vec<Figure>,
}

impl Figure {
    /// A figure that has no floor.
    pub(crate) fn alone(figure: impl Into<String>, value: f64, unit: &'static str) -> Self {
        let figure = figure.into();
        Self { figure, value, unit, floor: None, ratio: None, spread: None, target: None }
    }

    /// A figure and its floor, measured once.
    pub(crate) fn beside(
        figure: impl Into<String>,
        value: f64,
        unit: &'static str,
        floor: f64,
    ) -> Self {
        let alone = Self::alone(figure, value, unit);
        Self { floor: Some(floor), ratio: Some(value / floor), ..alone }
    }

    /// A figure and its floor, measured in turns: the medians of both and of their ratios.
    pub(crate) fn of_rounds(
        figure: impl Into<String>,
        unit: &'static str,
        rounds: &[Round],
    ) -> Self {
        let of = |part: fn(&Round) -> f64| rounds.iter().map(part).collect::<Vec<_>>();
        let ratios = of(Round::ratio);
        let (low, high) = ratios.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), ratio| {
            (low.min(*ratio), high.max(*ratio))
        });
        Self {
            figure: figure.into(),
            value: median(&of(|round| round.value)),
            unit,
            floor: Some(median(&of(|round| round.floor))),
            ratio: Some(median(&ratios)),
            spread: Some((low, high)),
            target: None,
        }
    }

    /// The same with what it is to reach.
    pub(crate) fn aiming_at(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Whether the target is reached; none where there is no target.
    pub(crate) fn reached(&self) -> Option<bool> {
        let value = self.ratio.unwrap_or(self.value);
        Some(match self.target? {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
        })
    }
}

/// A figure and its floor, right after each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) floor: f64,
    pub(crate) value: f64,
}

impl Round {
    fn ratio(&self) -> f64 {
        self.value / self.floor
    }
}

/// The value in the middle; of two in the middle the mean. NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len() / 2), sorted.len() % 2) {
        (None, _) => f64::NAN,
        (Some(middle), 1) => *middle,
        (Some(above), _) => f64::midpoint(sorted[sorted.len() / 2 - 1], *above),
    }
}

/// The value below which a share of the values lies. NaN of nothing.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

/// Three digits that count, and no more than a person reads.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_rounds_has_the_median_of_their_ratios() {
        let round = |floor, value| Round { floor, value };
        let rounds = [round(100.0, 50.0), round(200.0, 180.0), round(100.0, 70.0)];
        let figure = Figure::of_rounds("x", "1/s", &rounds);
        assert_eq!((figure.value, figure.floor), (70.0, Some(100.0)));
        assert_eq!((figure.ratio, figure.spread), (Some(0.7), Some((0.5, 0.9))));
        let figure = figure.aiming_at(Target::AtLeast(0.6));
        assert_eq!(figure.reached(), Some(true));
        assert_eq!(figure.aiming_at(Target::AtMost(0.6)).reached(), Some(false));
    }

    #[test]
    fn the_line_of_a_figure_has_five_fields() {
        let line = serde_json::to_value(Figure::beside("x", 3.0, "ms", 2.0)).unwrap();
        let expected = serde_json::json!(
            {"figure": "x", "value": 3.0, "unit": "ms", "floor": 2.0, "ratio": 1.5}
        );
        assert_eq!(line, expected);
    }

    #[test]
    fn a_quantile_is_a_value_of_the_list() {
        let list: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&list, 0.5), quantile(&list, 0.99)), (51.0, 100.0));
        assert_eq!((median(&list), median(&[3.0])), (50.5, 3.0));
        assert!(quantile(&[], 0.5).is_nan() && median(&[]).is_nan());
    }
}
