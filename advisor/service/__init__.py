"""The advisor as a service: alerts taken in and told, reports made on their days."""
