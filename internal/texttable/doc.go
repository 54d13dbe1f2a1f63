// Package texttable writes rows of text in columns that line up.
package texttable
