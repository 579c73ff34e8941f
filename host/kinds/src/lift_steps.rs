//! Steps and `describe`, from the contract's types to the model. What they may say is checked in
//! [`crate::steps`] and [`crate::describe`].

use crate::{
    bindings::proxops::kind::types as wit,
    check::{Budget, Checked, prose},
    lift::{Lift, ext, placement, resource, unknown},
    limits::Limits,
};
use proxops_model::kind::{
    GuestType, KindInfo, KindStep, Method, ObjectTarget, Operation, Ownership, Param, ParamValue, Target,
};

impl Lift<'_> {
    pub(crate) fn steps(&mut self, steps: Vec<wit::Step>) -> Checked<Vec<KindStep>> {
        self.list(steps, Self::step)
    }

    fn step(&mut self, step: wit::Step) -> Checked<KindStep> {
        Ok(match step {
            wit::Step::Create(params) => KindStep::Create { params: self.params(params)? },
            wit::Step::Restore(params) => KindStep::Restore { params: self.params(params)? },
            wit::Step::Clone(step) => {
                ext(&step.ext)?;
                KindStep::Clone { source: resource(step.source)?, params: self.params(step.params)? }
            }
            wit::Step::Configure(step) => {
                ext(&step.ext)?;
                KindStep::Configure {
                    set: self.params(step.set)?,
                    unset: self.keys(step.unset)?,
                    revert: self.keys(step.revert)?,
                }
            }
            wit::Step::Resize(step) => {
                ext(&step.ext)?;
                self.places.pointer(&step.at)?;
                KindStep::Resize { disk: step.disk, bytes: step.bytes, at: step.at }
            }
            wit::Step::RebuildCloudInit => KindStep::RebuildCloudInit,
            wit::Step::MarkTemplate => KindStep::MarkTemplate,
            wit::Step::Download(step) => {
                ext(&step.ext)?;
                let to = placement(step.to)?;
                KindStep::Download {
                    node: to.node,
                    storage: to.storage,
                    filename: to.filename,
                    params: self.params(step.params)?,
                }
            }
            wit::Step::Call(step) => {
                ext(&step.ext)?;
                KindStep::Call {
                    operation: step.operation,
                    vars: self.path_vars(step.vars)?,
                    set: self.params(step.set)?,
                    unset: self.keys(step.unset)?,
                }
            }
            wit::Step::Other((case, _)) => return unknown("step", &case),
        })
    }

    fn params(&mut self, params: Vec<wit::Param>) -> Checked<Vec<Param>> {
        self.list(params, |lift, p| {
            ext(&p.ext)?;
            let value = match p.value {
                wit::Value::Text(text) => ParamValue::Text(text),
                wit::Value::Many(texts) => {
                    lift.budget.list(&texts)?;
                    ParamValue::Many(texts)
                }
                wit::Value::Secret(name) => ParamValue::Secret(name),
                wit::Value::Other((case, _)) => return unknown("parameter value", &case),
            };
            Ok(Param { key: p.key, value, at: lift.at(p.at)? })
        })
    }

    fn keys(&mut self, refs: Vec<wit::ParamRef>) -> Checked<Vec<String>> {
        self.list(refs, |lift, r| {
            ext(&r.ext)?;
            lift.at(r.at)?;
            Ok(r.key)
        })
    }
}

/// The answer of `describe`, converted and checked.
pub(crate) fn info(answer: wit::Info, limits: &Limits) -> Checked<KindInfo> {
    ext(&answer.ext)?;
    let mut budget = Budget::new(limits);
    budget.list(&answer.api_versions)?;
    budget.list(&answer.examples)?;
    let info = KindInfo {
        kind: answer.kind,
        version: prose("version", &answer.version)?,
        api_versions: answer.api_versions,
        root: answer.root,
        summary: prose("summary", &answer.summary)?,
        target: target(answer.target, &mut budget)?,
        schema: answer.schema,
        examples: answer.examples,
    };
    crate::describe::check(&info)?;
    Ok(info)
}

fn target(target: wit::Target, budget: &mut Budget) -> Checked<Target> {
    Ok(match target {
        wit::Target::Guest(guest) => {
            ext(&guest.ext)?;
            let guest_type = match guest.guest_type {
                wit::GuestType::Qemu => GuestType::Qemu,
                wit::GuestType::Lxc => GuestType::Lxc,
            };
            Target::Guest { guest_type, template: guest.template }
        }
        wit::Target::Artifact(artifact) => {
            ext(&artifact.ext)?;
            budget.list(&artifact.extensions)?;
            Target::Artifact { content: artifact.content, extensions: artifact.extensions }
        }
        wit::Target::Object(object) => {
            ext(&object.ext)?;
            budget.list(&object.writes)?;
            let ownership = match object.ownership {
                wit::Ownership::None => Ownership::None,
                wit::Ownership::Tags(field) => Ownership::Tags(field),
                wit::Ownership::Marker(m) => Ownership::Marker { field: m.field, in_list: m.in_list },
                wit::Ownership::Other((case, _)) => return unknown("ownership", &case),
            };
            Target::Object(Box::new(ObjectTarget {
                list: operation(object.list)?,
                read: operation(object.read)?,
                id_field: object.id_field,
                writes: object.writes.into_iter().map(operation).collect::<Checked<_>>()?,
                ownership,
            }))
        }
        wit::Target::Other((case, _)) => return unknown("target", &case),
    })
}

fn operation(operation: wit::Operation) -> Checked<Operation> {
    ext(&operation.ext)?;
    Ok(Operation {
        name: operation.name,
        method: match operation.method {
            wit::Method::Get => Method::Get,
            wit::Method::Post => Method::Post,
            wit::Method::Put => Method::Put,
            wit::Method::Delete => Method::Delete,
        },
        path: operation.path,
        id_param: operation.id_param,
        digest: operation.digest,
    })
}
