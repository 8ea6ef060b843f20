//! What is wrong with the settings: field, value, what is allowed.

/// A setting whose value can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFault {
    /// Where it stands: `--rate`, or `file.toml line 3  rate`.
    pub field: String,
    /// The value as it was given.
    pub value: String,
    /// What would be right.
    pub allowed: String,
}

/// All faults of one start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingFaults(pub Vec<SettingFault>);

impl SettingFaults {
    /// Notes a fault.
    pub fn add(
        &mut self,
        field: impl Into<String>,
        value: impl Into<String>,
        allowed: impl Into<String>,
    ) {
        self.0.push(SettingFault {
            field: field.into(),
            value: value.into(),
            allowed: allowed.into(),
        });
    }

    /// The plan, if there was no fault.
    pub fn or<T>(self, plan: T) -> Result<T, SettingFaults> {
        if self.0.is_empty() {
            Ok(plan)
        } else {
            Err(self)
        }
    }
}

impl std::fmt::Display for SettingFaults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.0.len();
        let settings = if count == 1 {
            "1 setting is"
        } else {
            &format!("{count} settings are")
        };
        write!(f, "{settings} not usable, nothing was started:")?;
        let left = self
            .0
            .iter()
            .map(|fault| format!("{} = {:?}", fault.field, fault.value))
            .collect::<Vec<_>>();
        let width = left.iter().map(String::len).max().unwrap_or(0);
        for (fault, left) in self.0.iter().zip(left) {
            write!(f, "\n  {left:width$}  expected {}", fault.allowed)?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingFaults {}
