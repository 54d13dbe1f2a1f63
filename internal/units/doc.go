// Package units reads and writes sizes and other numbers that have a unit, in one
// way everywhere: options of addresses, flags, tables and pictures.
package units
