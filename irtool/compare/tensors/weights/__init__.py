"""What two runs read from outside, held against each other as sets, whatever call reads it."""
