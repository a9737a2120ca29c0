use backstitch::Slice;

#[derive(Slice)]
#[slice(name = "bits")]
union Bits {
    integer: u32,
    float: f32,
}

fn main() {}
