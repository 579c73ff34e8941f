//! A wire that somebody listens on: everything that a client sends to an address is kept.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Passes bytes on to an `http://` address and keeps what went there.
#[derive(Debug)]
pub struct Tap {
    url: String,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    /// In front of an address.
    pub fn on(target: &str) -> Self {
        let target = target.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&target) else { continue };
                let (mut up, mut down) = (client.try_clone().unwrap(), client);
                let (mut to, mut from) = (server.try_clone().unwrap(), server);
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(n @ 1..) = up.read(&mut buffer) {
                        kept.lock().unwrap().extend(&buffer[..n]);
                        if to.write_all(&buffer[..n]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut down);
                    let _ = down.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Self { url, heard }
    }

    /// Where to connect.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Everything that was sent so far.
    pub fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}
