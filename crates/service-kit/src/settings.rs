//! Settings from the environment: every mistake is reported at once.
//!
//! A setting `NAME` is the environment variable of that name, or the content of the file that
//! `NAME_FILE` names. Getters collect mistakes instead of failing at the first;
//! [`Settings::finish`] tells them all. This module knows no setting by name, and a variable that
//! nobody asks for is not a mistake: several processes share a ConfigMap.
//!
//! What is read here is wiped when it is dropped: all variables with [`Settings`], each buffer on
//! the way, and a secret with its `SecretString`. Out of reach, and so not wiped, are the
//! environment block of the process, which `NAME_FILE` avoids, and what others copy: the driver of
//! a database keeps the password as long as the process runs.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};

/// The exit code of a process whose settings are wrong (`EX_USAGE` of sysexits).
pub const EXIT_SETTINGS: u8 = 64;

/// The largest file that `NAME_FILE` may name, in bytes.
const FILE_LIMIT_BYTES: usize = 1024 * 1024;

/// The environment of a process, and the mistakes found in it so far.
///
/// It has no `Debug`: the environment holds secrets.
pub struct Settings {
    environment: HashMap<OsString, Zeroizing<Vec<u8>>>,
    asked: HashSet<OsString>,
    mistakes: Vec<Mistake>,
}

/// Every mistake of the settings, one line each. No value of a secret is ever in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsErrors(Vec<Mistake>);

/// One wrong setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The setting.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Settings {
    /// Reads the real environment, once. Later changes of it are not seen.
    #[must_use]
    pub fn from_process() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the settings")]
        let environment = std::env::vars_os();
        Self::from_pairs(environment)
    }

    /// Takes the given variables in place of the environment.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let held = |value: V| Zeroizing::new(value.into().into_vec());
        let pairs = pairs.into_iter().map(|(name, value)| (name.into(), held(value)));
        Self { environment: pairs.collect(), asked: HashSet::new(), mistakes: Vec::new() }
    }

    /// The value of a setting that may be absent. `None` when it is absent or wrong.
    ///
    /// The error of `parse` is shown: it must not be used for a secret.
    pub fn optional<T, E: fmt::Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(name)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => self.wrong(name, error.to_string()),
        }
    }

    /// The value of a setting that must be there. `None` when it is absent or wrong, and then
    /// [`Settings::finish`] fails.
    pub fn required<T, E: fmt::Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.must_be_there(name)?;
        self.optional(name, parse)
    }

    /// The value of a setting, or `default` where it is absent. Where it is wrong the default is
    /// given as well, but [`Settings::finish`] fails.
    pub fn or_default<T, E: fmt::Display>(
        &mut self,
        name: &str,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        self.optional(name, parse).unwrap_or(default)
    }

    /// A secret that may be absent.
    pub fn optional_secret(&mut self, name: &str) -> Option<SecretString> {
        self.text(name).map(|text| SecretString::from(text.as_str()))
    }

    /// A secret that must be there.
    pub fn required_secret(&mut self, name: &str) -> Option<SecretString> {
        self.must_be_there(name)?;
        self.optional_secret(name)
    }

    /// A secret that may be absent, given on as what `parse` makes of it. A reason is a fixed
    /// text, so that it can't quote the value.
    pub fn optional_secret_as<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let secret = self.optional_secret(name)?;
        match parse(secret.expose_secret()) {
            Ok(value) => Some(value),
            Err(reason) => self.wrong(name, reason),
        }
    }

    /// A secret that must be there, given on as what `parse` makes of it.
    pub fn required_secret_as<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        self.must_be_there(name)?;
        self.optional_secret_as(name, parse)
    }

    /// A setting that is itself the path of a file, read by whoever uses it (and read again when
    /// it changes). `NAME_FILE` is not looked for. `None` when it is absent or empty.
    pub fn optional_path(&mut self, name: &str) -> Option<PathBuf> {
        let value = self.variable(name)?;
        self.not_empty(name, &value).map(|text| PathBuf::from(text.as_str()))
    }

    /// As [`Settings::optional_path`], for one that must be there.
    pub fn required_path(&mut self, name: &str) -> Option<PathBuf> {
        if self.variable(name).is_none() {
            return self.wrong(name, "is not set");
        }
        self.optional_path(name)
    }

    /// Records a mistake that shows only when settings are seen together.
    pub fn mistake(&mut self, name: &str, reason: impl Into<String>) {
        self.mistakes.push(Mistake { name: name.to_owned(), reason: reason.into() });
    }

    /// Whether a setting is there, in either form and whatever its value.
    #[must_use]
    pub fn is_set(&mut self, name: &str) -> bool {
        self.variable(name).is_some() || self.variable(&file_name(name)).is_some()
    }

    /// The variables whose names begin with `prefix` and that nobody has asked for so far, in their
    /// order: a slip of the pen, perhaps. Names that are not UTF-8 are left out.
    #[must_use]
    pub fn unasked(&self, prefix: &str) -> Vec<String> {
        let names = self.environment.keys().filter(|name| !self.asked.contains(*name));
        let names = names.filter_map(|name| name.to_str()).filter(|name| name.starts_with(prefix));
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// Every mistake found, when there is one.
    pub fn finish(self) -> Result<(), SettingsErrors> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(SettingsErrors(self.mistakes)) }
    }

    /// Ends the reading and gives `value` back, which was put together with `?` from the `Option`s
    /// of the getters: it is `None` only where a mistake was recorded.
    ///
    /// # Errors
    ///
    /// Every mistake found, when there is one.
    pub fn accept<T>(mut self, value: Option<T>) -> Result<T, SettingsErrors> {
        let Some(value) = value else {
            if self.mistakes.is_empty() {
                self.mistake("settings", "are incomplete");
            }
            return Err(SettingsErrors(self.mistakes));
        };
        self.finish()?;
        Ok(value)
    }

    fn must_be_there(&mut self, name: &str) -> Option<()> {
        if self.is_set(name) {
            Some(())
        } else {
            self.wrong(name, format!("is not set, and neither is {}", file_name(name)))
        }
    }

    /// The text of a setting from either of its two places.
    fn text(&mut self, name: &str) -> Option<Zeroizing<String>> {
        let file = file_name(name);
        match (self.variable(name), self.variable(&file)) {
            (None, None) => None,
            (Some(_), Some(_)) => self.wrong(name, format!("is set, and so is {file}")),
            (Some(value), None) => self.not_empty(name, &value),
            (None, Some(path)) => {
                let path = self.not_empty(&file, &path)?;
                match read_small_file(Path::new(path.as_str())) {
                    Ok(text) => self.not_empty(&file, text.as_bytes()),
                    Err(reason) => self.wrong(&file, reason),
                }
            }
        }
    }

    fn variable(&mut self, name: &str) -> Option<Zeroizing<Vec<u8>>> {
        self.asked.insert(name.into());
        self.environment.get(OsStr::new(name)).cloned()
    }

    /// An empty value is a mistake: a template that was filled with nothing must not look like a
    /// setting that nobody made.
    fn not_empty(&mut self, name: &str, value: &[u8]) -> Option<Zeroizing<String>> {
        match str::from_utf8(value) {
            Ok("") => self.wrong(name, "is empty"),
            Ok(text) => Some(Zeroizing::new(text.to_owned())),
            Err(_) => self.wrong(name, "is not UTF-8"),
        }
    }

    fn wrong<T>(&mut self, name: &str, reason: impl Into<String>) -> Option<T> {
        self.mistake(name, reason);
        None
    }
}

impl SettingsErrors {
    /// The mistakes in the order in which they were found.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.0
    }
}

impl fmt::Display for SettingsErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: {}", mistake.name, mistake.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsErrors {}

fn file_name(name: &str) -> String {
    format!("{name}_FILE")
}

/// The text of a file without one trailing newline. The reason of a failure never quotes it.
fn read_small_file(path: &Path) -> Result<Zeroizing<String>, String> {
    let shown = path.display();
    let failed = |error: io::Error| format!("can't read {shown}: {}", error.kind());
    let mut file = File::open(path).map_err(failed)?;
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(vec![0; FILE_LIMIT_BYTES + 1]);
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    if length > FILE_LIMIT_BYTES {
        return Err(format!("{shown} has more than {FILE_LIMIT_BYTES} bytes"));
    }
    let text = str::from_utf8(&bytes[..length]).map_err(|_| format!("{shown} is not UTF-8"))?;
    let line = text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    Ok(Zeroizing::new(line.unwrap_or(text).to_owned()))
}
