//! What PVE accepts as the name of a file on a storage (facts S1, S3).

/// The content types that PVE can download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Installation media.
    Iso,
    /// Container templates.
    Template,
    /// Disk images to import.
    Import,
}

/// Longest file name that PVE takes (fact S3).
const LONGEST: usize = 255;

impl Content {
    /// PVE's name of the content type, which is also the folder part of a volume id.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iso => "iso",
            Self::Template => "vztmpl",
            Self::Import => "import",
        }
    }

    /// File name endings, with their dot (fact S1).
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Iso => &[".iso", ".img"],
            Self::Template => &[".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2", ".tar"],
            Self::Import => &[".qcow2", ".vmdk", ".raw", ".ova"],
        }
    }

    /// The volume id of a file: `<storage>:<content>/<filename>`.
    pub fn volid(self, storage: &str, filename: &str) -> String {
        format!("{storage}:{}/{filename}", self.as_str())
    }

    /// Checks a file name. The error completes the sentence "`filename` ...".
    pub fn check_filename(self, filename: &str) -> Result<(), String> {
        let kept = normalised(filename);
        if kept != filename {
            return Err(if kept.is_empty() {
                "must be a file name such as debian-13.iso, without a folder".to_owned()
            } else {
                format!("must be a name that PVE keeps; it would store this one as {kept:?}")
            });
        }
        if filename.len() > LONGEST {
            return Err(format!("must be at most {LONGEST} characters long"));
        }
        let stem = self.extensions().iter().find_map(|end| match self {
            // PVE takes .ISO too, but only lower case for the other types.
            Self::Iso => strip_suffix_any_case(filename, end),
            Self::Template | Self::Import => filename.strip_suffix(end),
        });
        match stem {
            Some(stem) if !stem.is_empty() => Ok(()),
            Some(_) => Err("must be more than an extension".to_owned()),
            None => Err(format!(
                "must end in {} for content type {}",
                self.extensions().join(", "),
                self.as_str()
            )),
        }
    }
}

/// The name under which PVE stores a file: folders cut off, everything outside `[A-Za-z0-9_.-]` replaced
/// by `_` (fact S3).
pub fn normalised(filename: &str) -> String {
    let name = filename.rsplit(['/', '\\']).next().unwrap_or_default();
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' }).collect()
}

fn strip_suffix_any_case<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let (stem, tail) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    tail.eq_ignore_ascii_case(end).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_content_type_has_its_own_endings() {
        for (content, good, bad) in [
            (Content::Iso, &["a.iso", "a.ISO", "a.Img"][..], &["a.qcow2", "a.iso.gz", "iso"][..]),
            (
                Content::Template,
                &["a.tar", "a.tar.gz", "a.tar.xz", "a.tar.zst", "a.tar.bz2"][..],
                &["a.tgz", "a.TAR.GZ", "a.zip"][..],
            ),
            (
                Content::Import,
                &["a.ova", "a.qcow2", "a.raw", "a.vmdk"][..],
                &["a.img", "a.QCOW2", "a.iso"][..],
            ),
        ] {
            for name in good {
                assert_eq!(content.check_filename(name), Ok(()), "{name}");
            }
            for name in bad {
                let error = content.check_filename(name).unwrap_err();
                assert!(error.contains("must end in"), "{name}: {error}");
            }
        }
    }

    #[test]
    fn a_name_that_pve_would_rewrite_says_what_it_would_become() {
        for (name, becomes) in [
            ("Debian 13.iso", "\"Debian_13.iso\""),
            ("../x.iso", "\"x.iso\""),
            ("iso/x.iso", "\"x.iso\""),
            ("ü.iso", "\"_.iso\""),
            ("a:b.iso", "\"a_b.iso\""),
        ] {
            let error = Content::Iso.check_filename(name).unwrap_err();
            assert!(error.contains(becomes), "{name}: {error}");
        }
        assert!(Content::Iso.check_filename("folder/").is_err());
    }

    #[test]
    fn a_name_is_neither_bare_extension_nor_too_long() {
        assert!(Content::Iso.check_filename(".iso").unwrap_err().contains("more than an extension"));
        assert!(Content::Iso.check_filename(&format!("{}.iso", "a".repeat(251))).is_ok());
        assert!(
            Content::Iso.check_filename(&format!("{}.iso", "a".repeat(252))).unwrap_err().contains("255")
        );
    }

    #[test]
    fn a_volume_id_names_storage_content_and_file() {
        assert_eq!(Content::Template.volid("local", "d.tar.zst"), "local:vztmpl/d.tar.zst");
    }
}
