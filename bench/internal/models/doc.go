// Package models prints the formulas of the papers.
package models
