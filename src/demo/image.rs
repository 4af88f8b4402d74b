//! PNG images that are the same in every run, made without a compressor: their size is what is wanted of them.

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// The largest block that deflate stores as it is (RFC 1951 section 3.2.4).
const STORED_BLOCK_MAX: usize = 65_535;

/// A square of grey waves, with `side` pixels on each side and a byte for each pixel.
pub(super) fn square(side: u32) -> Vec<u8> {
    let mut header = Vec::with_capacity(13);
    header.extend(side.to_be_bytes());
    header.extend(side.to_be_bytes());
    // 8 bits a sample, greyscale, the only compression and filter methods there are, not interlaced.
    header.extend([8, 0, 0, 0, 0]);
    let mut out = SIGNATURE.to_vec();
    chunk(&mut out, *b"IHDR", &header);
    chunk(&mut out, *b"IDAT", &zlib_stored(&scanlines(side)));
    chunk(&mut out, *b"IEND", &[]);
    out
}

fn scanlines(side: u32) -> Vec<u8> {
    let mut lines = Vec::new();
    for y in 0..side {
        // Each line begins with its filter: none.
        lines.push(0);
        // Truncation makes the waves.
        lines.extend((0..side).map(|x| (x.wrapping_mul(x).wrapping_add(y.wrapping_mul(y)) >> 4).to_le_bytes()[0]));
    }
    lines
}

fn chunk(out: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes());
    out.extend(kind);
    out.extend(data);
    let crc = data.iter().fold(crc32(!0, &kind), |crc, &byte| crc32(crc, &[byte]));
    out.extend((!crc).to_be_bytes());
}

/// zlib's frame (RFC 1950) around stored blocks.
fn zlib_stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let count = data.chunks(STORED_BLOCK_MAX).count();
    for (index, block) in data.chunks(STORED_BLOCK_MAX).enumerate() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(index + 1 == count));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(adler32(data).to_be_bytes());
    out
}

fn adler32(data: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (a, b) = data.iter().fold((1, 0), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % MODULUS;
        (a, (b + a) % MODULUS)
    });
    b << 16 | a
}

/// Goes on with a checksum, before its final inversion.
fn crc32(crc: u32, data: &[u8]) -> u32 {
    data.iter().fold(crc, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!(!crc32(!0, b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn an_image_is_a_little_more_than_its_pixels() {
        for side in [54, 319] {
            let image = square(side);
            let pixels = (side * (side + 1)) as usize;
            let blocks = pixels.div_ceil(STORED_BLOCK_MAX);
            // Signature, three chunks of 12 bytes, the header's 13, zlib's 6 and 5 for each block.
            assert_eq!(image.len(), 8 + 36 + 13 + 6 + 5 * blocks + pixels);
            assert!(image.starts_with(&SIGNATURE));
            assert!(image.ends_with(b"\0\0\0\0IEND\xae\x42\x60\x82"));
        }
    }
}
