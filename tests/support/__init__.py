"""What tests share: fakes, small projects, stored runs."""
