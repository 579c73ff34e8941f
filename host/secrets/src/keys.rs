//! The data key of a document: unwrapped with an identity, or wrapped for a recipient.

use std::io::Read as _;
use std::str::FromStr as _;

use age::armor::ArmoredReader;
use age::{DecryptError, Decryptor};
use zeroize::Zeroizing;

use crate::cipher::DataKey;
use crate::error::SopsError;
use crate::identity::{Found, IdentitySources};
use crate::metadata::{AgeKey, Metadata};
use crate::shamir;

/// The wrapped key is 32 bytes, or 33 for a share; an age file of more is not one of ours.
const MAX_SHARE: u64 = 64;

/// Finds identities until enough groups of the document are open, place after place.
pub(crate) fn unwrap(
    metadata: &Metadata,
    sources: &IdentitySources,
    file: &str,
) -> Result<DataKey, SopsError> {
    let (mut looked, mut failures, mut tried) = (Vec::new(), Vec::new(), 0);
    let mut shares: Vec<Option<Zeroizing<Vec<u8>>>> = metadata.groups.iter().map(|_| None).collect();
    for (place, found) in sources.places() {
        let identities = match found {
            Found::Nothing => {
                looked.push(place);
                continue;
            }
            Found::Failed(reason) => {
                failures.push(reason);
                continue;
            }
            Found::Identities(identities) => identities,
        };
        tried += identities.len();
        for (share, group) in shares.iter_mut().zip(&metadata.groups).filter(|(share, _)| share.is_none()) {
            for key in &group.age {
                match open(key, &identities) {
                    Ok(Some(plain)) => {
                        *share = Some(plain);
                        break;
                    }
                    Ok(None) => {}
                    Err(reason) if failures.contains(&reason) => {}
                    Err(reason) => failures.push(reason),
                }
            }
        }
        let open: Vec<_> = shares.iter().flatten().cloned().collect();
        if open.len() >= metadata.threshold.min(metadata.groups.len()).max(1) {
            return join(&open, metadata, file);
        }
    }
    let file = file.to_owned();
    if tried == 0 {
        return Err(SopsError::NoIdentity { file, looked, failures });
    }
    if shares.iter().any(Option::is_some) {
        failures.push(format!(
            "{} of the {} key groups needed could be opened",
            shares.iter().flatten().count(),
            metadata.threshold
        ));
    }
    Err(SopsError::NoMatchingIdentity { file, tried, recipients: metadata.recipients(), failures })
}

fn join(shares: &[Zeroizing<Vec<u8>>], metadata: &Metadata, file: &str) -> Result<DataKey, SopsError> {
    let joined = match shares {
        [only] if metadata.groups.len() == 1 => Some(only.clone()),
        several => shamir::combine(several),
    };
    joined.and_then(|bytes| DataKey::from_bytes(&bytes)).ok_or_else(|| SopsError::Malformed {
        file: file.to_owned(),
        position: None,
        reason: "the data key under sops.age is not a key of 32 bytes".to_owned(),
    })
}

/// Opens one wrapped key: `None` if no identity fits, an error if one fits and the file is broken.
fn open(key: &AgeKey, identities: &[Box<dyn age::Identity>]) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
    let broken = |what: &str| format!("the key wrapped for {}: {what}", key.recipient);
    let decryptor = Decryptor::new_buffered(ArmoredReader::new(key.enc.as_bytes()))
        .map_err(|_| broken("not an armoured age file"))?;
    let reader = match decryptor.decrypt(identities.iter().map(Box::as_ref)) {
        Ok(reader) => reader,
        Err(DecryptError::NoMatchingKeys) => return Ok(None),
        Err(_) => return Err(broken("damaged")),
    };
    let mut plain = Zeroizing::new(Vec::with_capacity(MAX_SHARE as usize));
    reader.take(MAX_SHARE).read_to_end(&mut plain).map_err(|_| broken("damaged"))?;
    Ok(Some(plain))
}

/// Wraps the data key for one recipient: an age public key, or an SSH one (ed25519 or RSA).
pub(crate) fn wrap(key: &DataKey, recipient: &str) -> Result<String, String> {
    let wrapped = if recipient.starts_with("ssh-") {
        let parsed = age::ssh::Recipient::from_str(recipient)
            .map_err(|_| format!("{recipient}: not an ssh-ed25519 or ssh-rsa public key"))?;
        age::encrypt_and_armor(&parsed, key.bytes())
    } else {
        let parsed =
            age::x25519::Recipient::from_str(recipient).map_err(|reason| format!("{recipient}: {reason}"))?;
        age::encrypt_and_armor(&parsed, key.bytes())
    };
    wrapped.map_err(|_| format!("{recipient}: can not be encrypted for"))
}
