//! `[cache]`.

use super::{count_within, words};
use crate::config::diagnostics::Report;
use crate::config::file;
use crate::config::values::{At, ByteSize};

/// The memory tier is made of shards; even a single one takes no object that does not fit in it several times over.
const OBJECTS_IN_TIER_MIN: u64 = 8;
/// Below this the overhead of the tier is most of it.
const TIER_MIN: ByteSize = ByteSize::kib(64);
const VARIANTS_MAX: u64 = 65_535;

/// The name of the zone, and the bounds of its memory tier.
pub(super) fn memory(cache: &file::Cache, report: &mut Report) -> (String, larder_storage::Config) {
    words::check_name(&cache.name, report);
    let memory = &cache.memory;
    let max_size = *memory.max_size;
    if max_size.0 == 0 && cache.disk.is_empty() {
        report.warning(
            memory.max_size.span(),
            "the memory tier is off and there is no disk, so that nothing is cached",
            "",
        );
    } else if max_size.0 > 0 && max_size < TIER_MIN {
        let help = "or write \"0\" to switch the tier off";
        report.error(
            memory.max_size.span(),
            format!("`max_size` is less than {TIER_MIN}"),
            help,
        );
    }
    let max_object = memory.max_object.as_ref().map_or_else(
        || larder_storage::Config::with_max_size(max_size.0).max_object,
        |max_object| judge_max_object(max_object, max_size, report),
    );
    let variants = &memory.variants;
    let config = larder_storage::Config {
        max_size: max_size.0,
        max_object,
        variants: count_within(
            (**variants).into(),
            variants.span(),
            (1, VARIANTS_MAX),
            "variants",
            report,
        ),
    };
    ((*cache.name).clone(), config)
}

fn judge_max_object(max_object: &At<ByteSize>, max_size: ByteSize, report: &mut Report) -> u64 {
    let largest = ByteSize(max_size.0 / OBJECTS_IN_TIER_MIN);
    if max_object.0 == 0 {
        let help = "write \"0\" for `max_size` to switch the tier off";
        report.error(max_object.span(), "`max_object` must be above 0", help);
    } else if **max_object > largest && max_size.0 != 0 {
        let message = format!("`max_object` is more than the tier takes, which is {largest} (`max_size` / 8)");
        let needed = ByteSize(max_object.0.saturating_mul(OBJECTS_IN_TIER_MIN));
        report.error(
            max_object.span(),
            message,
            format!("lower it, or raise `max_size` to \"{needed}\""),
        );
    }
    max_object.0
}
