// Package cut shortens texts.
package cut

import "unicode/utf8"

// Text returns text, or as many whole characters from its beginning as at most bytes hold. What is
// no UTF-8 is cut anywhere. It returns a part of text.
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
