// Package cut shortens texts.
package cut

import "unicode/utf8"

// Text returns text, or as many whole characters from its beginning as at most bytes hold. Text
// that is not UTF-8 is cut anywhere. What it returns is a part of text.
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
