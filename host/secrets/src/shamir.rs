//! Joins the shares of a data key that is split over several key groups (Shamir, over GF(2^8) with the
//! AES polynomial). A share is one byte per secret byte, and a last byte that is its x coordinate.

use zeroize::Zeroizing;

/// The secret at x = 0, or `None` if the shares do not belong together.
pub(crate) fn combine(shares: &[Zeroizing<Vec<u8>>]) -> Option<Zeroizing<Vec<u8>>> {
    let length = shares.first()?.len().checked_sub(1)?;
    let points: Vec<(u8, &[u8])> = shares
        .iter()
        .map(|share| share.split_last().filter(|(_, ys)| ys.len() == length).map(|(x, ys)| (*x, ys)))
        .collect::<Option<_>>()?;
    let distinct = points
        .iter()
        .enumerate()
        .all(|(i, (x, _))| *x != 0 && points.iter().skip(i + 1).all(|(o, _)| o != x));
    if !distinct {
        return None;
    }
    let mut secret = Zeroizing::new(vec![0u8; length]);
    for (x, ys) in &points {
        // Lagrange basis at 0; addition and subtraction are both xor.
        let weight = points
            .iter()
            .filter(|(other, _)| other != x)
            .fold(1, |product, (other, _)| multiply(product, multiply(*other, invert(other ^ x))));
        for (out, y) in secret.iter_mut().zip(ys.iter()) {
            *out ^= multiply(weight, *y);
        }
    }
    Some(secret)
}

fn multiply(a: u8, b: u8) -> u8 {
    let (mut a, mut product) = (a, 0u8);
    for bit in 0..8 {
        let take = 0u8.wrapping_sub((b >> bit) & 1);
        product ^= a & take;
        let reduce = 0u8.wrapping_sub(a >> 7);
        a = (a << 1) ^ (0x1b & reduce);
    }
    product
}

/// `a` to the power of 254.
fn invert(a: u8) -> u8 {
    (0..253).fold(a, |power, _| multiply(power, a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_that_of_the_aes_field() {
        assert_eq!(multiply(0x57, 0x83), 0xc1);
        for a in 1..=255u8 {
            assert_eq!(multiply(a, invert(a)), 1, "{a}");
        }
    }

    #[test]
    fn shares_of_a_line_meet_at_the_secret() {
        let share = |x: u8| Zeroizing::new(vec![0x42 ^ multiply(0x99, x), x]);
        assert_eq!(combine(&[share(3), share(200)]).unwrap().as_slice(), [0x42]);
        assert!(combine(&[share(3), share(3)]).is_none());
        assert!(combine(&[]).is_none());
    }
}
