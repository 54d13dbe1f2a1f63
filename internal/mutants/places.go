package main

import (
	"go/scanner"
	"go/token"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// place is a change that the tool found: a piece of one line of a file, and the text in its place.
type place struct {
	kind   string // of change
	at     int    // offset in the file
	before string
	after  string
	line   int    // from 1
	code   string // the line, without space around it
	nth    int    // among equal texts of the line, from 0
}

// The kinds of changes.
const (
	turned = "comparison turned"
	bound  = "bound plus 1"
	out    = "statement out"
	order  = "order weakened"
)

// apply returns a text with the change in it.
func (p place) apply(text string) string {
	return text[:p.at] + p.after + text[p.at+len(p.before):]
}

// hash orders places by chance, but the same after an edit of other lines.
func (p place) hash(file string) uint64 {
	h := fnv.New64a()
	for _, part := range []string{file, p.kind, p.before, strconv.Itoa(p.nth), p.code} {
		h.Write([]byte(part + "\n"))
	}
	return h.Sum64()
}

// replacements of operators.
var replacements = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
}

// bounded are the operators before a number that is a bound.
var bounded = []token.Token{token.ADD, token.SUB, token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.SHL, token.SHR}

// lexeme is a token of a file.
type lexeme struct {
	at   int
	tok  token.Token
	text string
	auto bool // a semicolon that the scanner of Go inserted
}

// preprocessor lines of C, whose continuations end in a backslash.
var preprocessor = regexp.MustCompile(`(?m)^[ \t]*#(.*\\\n)*.*$`)

// lexemes are the tokens of a file by lines. C has those of Go but for the arrow.
func lexemes(text string, c bool) (lines [][]lexeme) {
	if c {
		text = preprocessor.ReplaceAllStringFunc(text, func(s string) string {
			return regexp.MustCompile(`[^\n]`).ReplaceAllString(s, " ")
		})
		text = strings.ReplaceAll(text, "->", " .")
	}
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), func(token.Position, string) {}, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		auto := tok == token.SEMICOLON && literal == "\n"
		if auto && c {
			continue
		}
		if literal == "" || tok == token.SEMICOLON {
			literal = tok.String()
		}
		for len(lines) <= file.Line(pos) {
			lines = append(lines, nil)
		}
		at := file.Offset(pos)
		lines[file.Line(pos)] = append(lines[file.Line(pos)], lexeme{at: at, tok: tok, text: literal, auto: auto})
	}
}

// places finds the places of a file: each is a change of a single line.
func places(text string, c bool) (list []place) {
	var before []lexeme // the line above that is not empty
	depth := 0          // of parentheses where a line begins
	source := strings.Split(text, "\n")
	for n, line := range lexemes(text, c) {
		if len(line) == 0 {
			continue
		}
		add := func(kind string, at int, was, is string) {
			nth := strings.Count(source[n-1][:at-line[0].at+indent(source[n-1])], was)
			list = append(list, place{kind, at, was, is, n, strings.TrimSpace(source[n-1]), nth})
		}
		for i, l := range line {
			if by, ok := replacements[l.tok]; ok {
				add(turned, l.at, l.text, by.String())
			}
			if l.tok == token.INT && i > 0 && slices.Contains(bounded, line[i-1].tok) {
				if v, err := strconv.ParseUint(l.text, 0, 32); err == nil {
					add(bound, l.at, l.text, strconv.FormatUint(v+1, 10))
				}
			}
			if strings.HasPrefix(l.text, "memory_order_") && l.text != "memory_order_relaxed" {
				add(order, l.at, l.text, "memory_order_relaxed")
			}
		}
		if end := line[len(line)-1].at; depth == 0 && statement(before, line, c) {
			was, is := text[line[0].at:end], ""
			if c {
				was, is = was+";", ";"
			}
			add(out, line[0].at, was, is)
		}
		depth += nesting(line)
		before = line
	}
	return list
}

// indent is the length of the space that a line begins with.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// nesting is the number of parentheses that a line opens, less those that it closes.
func nesting(line []lexeme) (n int) {
	for _, l := range line {
		switch l.tok {
		case token.LPAREN:
			n++
		case token.RPAREN:
			n--
		}
	}
	return n
}

// statement reports whether a line is one whole statement that calls or assigns.
func statement(before, line []lexeme, c bool) bool {
	if len(before) == 0 || len(line) < 3 || nesting(line) != 0 || line[len(line)-1].tok != token.SEMICOLON {
		return false
	}
	switch last := before[len(before)-1]; {
	case slices.Contains([]token.Token{token.SEMICOLON, token.LBRACE, token.RBRACE, token.COLON}, last.tok):
	case c && last.tok == token.RPAREN && slices.Contains([]token.Token{token.IF, token.FOR, token.ELSE, token.RBRACE}, before[0].tok):
	default:
		return false
	}
	// Threads alone notice a lock that is not taken: the thread sanitizer has them.
	first, second := line[0], line[1]
	if first.tok != token.IDENT || slices.Contains([]string{"while", "do", "static", "panic", "nfc_lock"}, first.text) ||
		slices.Contains([]token.Token{token.IDENT, token.MUL, token.COLON, token.COMMA}, second.tok) {
		return false
	}
	for i, l := range line {
		switch l.tok {
		case token.DEFINE, token.FUNC, token.STRUCT:
			return false
		case token.ASSIGN, token.INC, token.DEC, token.ADD_ASSIGN, token.SUB_ASSIGN, token.OR_ASSIGN, token.AND_ASSIGN:
			return true
		case token.LPAREN:
			if i == 1 || line[i-1].tok == token.IDENT {
				return true
			}
		}
	}
	return false
}
