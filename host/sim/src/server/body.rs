//! Response bodies, also one that breaks off.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// A body that is whole, or ends half way although its length said more.
pub(super) enum Answered {
    Whole(Option<Bytes>),
    Cut { first: Option<Bytes>, length: u64, flushed: bool },
}

impl Answered {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    pub(super) fn cut(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::Cut { length: bytes.len() as u64, first: Some(bytes.slice(..bytes.len() / 2)), flushed: false }
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(match &mut *self {
            Self::Whole(bytes) => {
                bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes)))
            }
            Self::Cut { first, flushed, .. } => match first.take() {
                Some(bytes) => Some(Ok(Frame::data(bytes))),
                // the first half is on its way before the connection breaks
                None if !*flushed => {
                    *flushed = true;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                None => Some(Err(std::io::Error::other("connection lost"))),
            },
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Cut { length, .. } => SizeHint::with_exact(*length),
        }
    }
}
