// Package truncate shortens texts.
package truncate

import "unicode/utf8"

// Text returns text, or the longest prefix of whole characters within most bytes. Text that is not
// UTF-8 is cut at any byte. The result is a part of text.
func Text[T string | []byte](text T, most int) T {
	if len(text) <= most {
		return text
	}
	end := max(most, 0)
	for end > max(most-utf8.UTFMax, 0) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
