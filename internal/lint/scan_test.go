package lint

import (
	"slices"
	"strings"
)

// The rules read each comment and each name of the tree. Regular expressions take most of a minute
// for that under the race detector, loops over bytes a second.

// blanks replaces text by blanks and keeps its lines.
func blanks(text string) string {
	b := []byte(text)
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

// scan splits the text of C or a proto, and keeps the place of each byte. Of code, comments, strings
// and the names of included files are blank. Of remarks, all but the comments is.
func scan(text string) (code, remarks string) {
	c, r := []byte(blanks(text)), []byte(blanks(text))
	for at := 0; at < len(text); {
		plain := strings.IndexAny(text[at:], "/\"'#")
		if plain < 0 {
			copy(c[at:], text[at:])
			break
		}
		copy(c[at:], text[at:at+plain])
		at += plain
		rest := text[at:]
		size := 1
		switch {
		case strings.HasPrefix(rest, "/*"):
			size = upTo(rest, "*/")
			copy(r[at:], rest[:size])
		case strings.HasPrefix(rest, "//"):
			size = upTo(rest, "\n")
			copy(r[at:], rest[:size])
		case strings.HasPrefix(rest, "#include"):
			size = upTo(rest, "\n")
		case rest[0] == '"', rest[0] == '\'':
			size = quoted(rest)
		default:
			c[at] = rest[0]
		}
		at += size
	}
	return string(c), string(r)
}

// upTo returns the number of bytes up to the end of what ends a piece of text.
func upTo(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

// quoted returns the number of bytes of the string or the character that text begins with.
func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0], '\n':
			return i + 1
		}
	}
	return len(text)
}

// remarks returns the comments of a source file, and the sentences of a document. All else is blank.
// A line with a comment behind code begins with a vertical tab, and ends with one where the comment
// does, as it says nothing with the lines around it.
func (f *file) remarks() string {
	switch {
	case f.said != "":
	case f.ast != nil:
		r := []byte(blanks(f.text))
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				copy(r[f.fset.Position(c.Pos()).Offset:], c.Text)
			}
		}
		f.said = behindCode(f.text, string(r))
	case strings.HasSuffix(f.path, ".md"):
		f.said = code.ReplaceAllStringFunc(f.text, blanks)
	default:
		_, r := scan(f.text)
		f.said = behindCode(f.text, r)
	}
	return f.said
}

// behindCode marks the lines of remarks whose comment stands behind code.
func behindCode(text, remarks string) string {
	lines := strings.Split(remarks, "\n")
	for i, source := range strings.Split(text, "\n") {
		begin := strings.IndexFunc(lines[i], func(r rune) bool { return r != ' ' })
		if begin <= 0 || strings.TrimSpace(source[:begin]) == "" {
			continue
		}
		lines[i] = "\v" + lines[i][1:]
		if strings.HasPrefix(lines[i][begin:], "//") || strings.HasSuffix(lines[i], "*/") {
			lines[i] += "\v"
		}
	}
	return strings.Join(lines, "\n")
}

func isLetter(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' }

// identifiers lists the names of C or a proto and their lines.
func identifiers(text string) (names []name) {
	code, _ := scan(text)
	for i, line := range strings.Split(code, "\n") {
		for _, id := range strings.FieldsFunc(line, func(r rune) bool { return !isLetter(r) && r != '_' && (r < '0' || r > '9') }) {
			if id[0] > '9' { // a number has letters, too: 0x1u
				names = append(names, name{id, i + 1})
			}
		}
	}
	return names
}

// splitNames are the words of the names that nameWords has split: a tree uses a name often.
var splitNames = make(map[string][]string)

// nameWords splits an identifier into words of small letters, and adds each pair of neighbours, for
// what is one word in two: getUp. fooBar, FooBAR, foo_bar and FOO_BAR are two words each.
func nameWords(name string) []string {
	if words, is := splitNames[name]; is {
		return words
	}
	var words []string
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return !isLetter(r) }) {
		begin := 0
		for i := 1; i < len(part); i++ {
			small := part[i] >= 'a'
			if !small && part[i-1] >= 'a' || small && part[i-1] < 'a' && i-1 > begin {
				end := i
				if small { // HTTPServer: the last capital begins the next word
					end--
				}
				words = append(words, strings.ToLower(part[begin:end]))
				begin = end
			}
		}
		words = append(words, strings.ToLower(part[begin:]))
	}
	for i, single := 1, len(words); i < single; i++ {
		words = append(words, words[i-1]+words[i])
	}
	splitNames[name] = slices.Clip(words)
	return words
}
