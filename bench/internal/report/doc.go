// Package report has the other subjects measure, and writes what they found into one folder: all goals, or
// the tables and figures of the papers.
package report
