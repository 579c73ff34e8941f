//! A real Chromium without a window, spoken to over its debugging pipe.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// One page of one browser.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    last: u64,
    _folder: TempDir,
}

/// The browser's program: `PROXOPS_CHROMIUM`, or what Debian calls it.
fn program() -> Option<PathBuf> {
    let given = std::env::var_os("PROXOPS_CHROMIUM").map(PathBuf::from);
    let usual =
        ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(PathBuf::from);
    given.into_iter().chain(usual).find(|path| path.exists())
}

impl Browser {
    /// `None`, and a line that nobody overlooks, where there is no browser.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("==================================================================================");
            eprintln!("SKIPPED: no Chromium here, so the page was NOT tested. `apt-get install chromium`,");
            eprintln!("or name one in PROXOPS_CHROMIUM.");
            eprintln!("==================================================================================");
            assert!(std::env::var_os("PROXOPS_NEED_CHROMIUM").is_none(), "PROXOPS_NEED_CHROMIUM is set");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let (to, from) = (folder.path().join("to"), folder.path().join("from"));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        // The pipe is file descriptors 3 and 4, which only a shell can hand over without unsafe code.
        let script = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                      --disable-extensions --hide-scrollbars --force-color-profile=srgb --remote-debugging-pipe \
                      --user-data-dir=\"$1/profile\" about:blank 3<\"$1/to\" 4>\"$1/from\"";
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(&program)
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // In the shell's order: each opening waits for its other end.
        let to = File::options().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let mut browser = Self { child, to, from, session: String::new(), last: 0, _folder: folder };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session =
            browser.call("Target.attachToTarget", attach)["sessionId"].as_str().unwrap().to_owned();
        browser.call("Page.enable", json!({}));
        browser.size(1280, 900);
        Some(browser)
    }

    /// One call of the protocol and its result; events in between are dropped.
    #[track_caller]
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert!(!bytes.is_empty(), "the browser ended");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// Width and height of the window in pixels.
    pub fn size(&mut self, width: u32, height: u32) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// Light or dark, as the user's system would say.
    pub fn dark(&mut self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// With or without scripts.
    pub fn scripts(&mut self, on: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": !on}));
    }

    /// Goes to an address and waits until it is loaded.
    #[track_caller]
    pub fn go(&mut self, url: &str) {
        let went = self.call("Page.navigate", json!({"url": url}));
        assert!(went["errorText"].is_null(), "{url}: {went}");
        self.until(
            "the page is loaded",
            "document.readyState === 'complete' && location.href !== 'about:blank'",
        );
    }

    /// The value of an expression.
    #[track_caller]
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn until(&mut self, what: &str, expression: &str) {
        let start = Instant::now();
        while self.eval(expression) != true {
            assert!(start.elapsed() < Duration::from_secs(30), "not so after 30 s: {what} ({expression})");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Presses a key that gives this text.
    pub fn key(&mut self, key: &str, text: &str) {
        let down = json!({"type": "keyDown", "key": key, "text": text});
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key}));
    }

    /// Writes a PNG of the whole page to `PROXOPS_SCREENSHOTS`, if that is set.
    pub fn screenshot(&mut self, name: &str) {
        use base64::Engine as _;
        let Some(folder) = std::env::var_os("PROXOPS_SCREENSHOTS").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&folder).unwrap();
        let shot =
            self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}));
        let bytes = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
