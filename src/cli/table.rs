//! Plain tables and figures for people.

/// Columns as wide as their widest cell: the first to the left, the others to the right.
pub(super) fn render(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// `1536` is `1.5 KiB`.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
pub(super) fn bytes(count: u64) -> String {
    const STEP: f64 = 1024.0;
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        // What would be shown as 1024.0 is shown as 1.0 of the next.
        if value < STEP - 0.05 {
            break;
        }
        value /= STEP;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_one_decimal_and_the_largest_unit() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["vhost", "n"], vec!["a", "100"], vec!["longer", "1"]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(render(&rows), "vhost     n\na       100\nlonger    1\n");
        assert_eq!(render(&[]), "");
    }
}
