// Package truncate shortens texts.
package truncate

import "unicode/utf8"

// Text returns text, or the longest prefix of whole characters that fits into limit bytes. Text
// that is not UTF-8 is cut at any byte. The result is a part of text.
func Text[T string | []byte](text T, limit int) T {
	if len(text) <= limit {
		return text
	}
	end := max(limit, 0)
	for end > max(limit-utf8.UTFMax, 0) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
