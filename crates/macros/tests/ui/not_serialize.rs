use backstitch::Slice;

#[derive(Slice)]
#[slice(name = "plan")]
struct Plan {
    steps: u8,
}

fn main() {}
