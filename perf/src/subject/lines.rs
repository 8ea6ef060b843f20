//! Lines of text protocols.

/// The lines of `bytes` that are whole, without their ends.
pub fn whole_lines(bytes: &[u8]) -> Lines<'_> {
    Lines { bytes, at: 0 }
}

/// See [`whole_lines`].
pub struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    /// Where the next line begins.
    pub fn position(&self) -> usize {
        self.at
    }

    /// So many bytes and the line end behind them, if all are there.
    pub fn block(&mut self, length: usize) -> Option<&'a [u8]> {
        let block = self.bytes.get(self.at..self.at + length)?;
        self.bytes.get(self.at + length..self.at + length + 2)?;
        self.at += length + 2;
        Some(block)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.at += end + 2;
        Some(&rest[..end])
    }
}
