//! The component of the built-in kind `CTTemplate`.

proxops_kind::export_kind!(proxops_artifact::CtTemplate);
proxops_kind::small_blocks!();
